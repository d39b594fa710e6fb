// Package cdn runs nginx as a stand-in for CloudFront, to test and measure CDN delivery on one machine. It behaves like
// the distribution in the cloud, as docs/cdn.md describes it:
//
//   - Every request, also a cache hit, must have a valid signature (auth_request to Verifier).
//   - The cache key is the path, unchanged, without the query. No header of the client is passed on.
//   - Objects that the bucket lacks come from the media function. Originals always do.
//   - Responses with status 200 are cached for a year, whatever their headers say; others are not cached.
//   - Concurrent misses of one object become one request.
//   - Web clients of any origin may read the responses. Preflight requests are answered here, also without a signature.
package cdn

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/longbox/longbox/shared/platform/cors"
)

// Config sets where the edge listens and its upstreams. Addresses are host:port, for plain HTTP.
type Config struct {
	Dir    string // an empty folder for nginx alone
	Port   int    // on 127.0.0.1
	Verify string // the Verifier
	Bucket string // serves GET /<key> from the media bucket, like CloudFront's origin access
	Media  string // the media function
	Secret string // ORIGIN_SECRET of the media function
	Prefix string // path prefix of keys in the media function: /cdn
}

// Program finds nginx, which Debian installs outside a user's PATH.
func Program() (string, error) {
	if p, err := exec.LookPath("nginx"); err == nil {
		return p, nil
	}
	const debian = "/usr/sbin/nginx"
	if _, err := os.Stat(debian); err != nil {
		return "", fmt.Errorf("no nginx found: apt-get install nginx, or make tools")
	}
	return debian, nil
}

// Write writes the configuration and returns the arguments to run nginx in the foreground.
func (c Config) Write() ([]string, error) {
	path := filepath.Join(c.Dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(c.text()), 0o644); err != nil {
		return nil, fmt.Errorf("cdn: %w", err)
	}
	return []string{"-p", c.Dir, "-c", path, "-e", filepath.Join(c.Dir, "error.log")}, nil
}

func (c Config) text() string {
	dir := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(c.Dir) // nginx's escapes inside quotes
	return strings.NewReplacer("{dir}", dir, "{port}", fmt.Sprint(c.Port), "{verify}", c.Verify, "{bucket}", c.Bucket,
		"{media}", c.Media, "{secret}", c.Secret, "{prefix}", c.Prefix,
		"{headers}", cors.RequestHeaders, "{expose}", Expose).Replace(config)
}

// Expose names the response headers that web clients of any origin may read, as in infra/cdn.yaml.
const Expose = "ETag, Accept-Ranges, Content-Range"

// X-Cache (cache status) and X-Origin (which upstream answered) are for tests. The log has no query, because queries
// contain signatures.
const config = `daemon off;
worker_processes 1;
pid "{dir}/pid";
events { worker_connections 1024; }
http {
  types { }
  client_body_temp_path "{dir}/body";
  proxy_temp_path "{dir}/proxy";
  fastcgi_temp_path "{dir}/fastcgi";
  uwsgi_temp_path "{dir}/uwsgi";
  scgi_temp_path "{dir}/scgi";
  log_format edge '$upstream_cache_status $status $request_method $path $body_bytes_sent';
  access_log "{dir}/access.log" edge;
  proxy_cache_path "{dir}/cache" levels=2 keys_zone=pictures:10m inactive=365d max_size=10g use_temp_path=off;
  map $request_uri $path { ~^(?<before>[^?]*) $before; }
  map $upstream_http_x_cdn_origin $from { default $upstream_http_x_cdn_origin; "" media; }
  map $request_method $methods { OPTIONS "GET, HEAD"; }
  map $request_method $headers { OPTIONS "{headers}"; }
  map $request_method $age { OPTIONS 600; }
  upstream verify { server {verify}; keepalive 32; }
  upstream bucket { server {bucket}; keepalive 32; }
  upstream media { server {media}; keepalive 32; }
  merge_slashes off;
  proxy_http_version 1.1;
  large_client_header_buffers 4 16k;
  server {
    listen 127.0.0.1:{port};
    auth_request /_verify;
    if ($request_method = OPTIONS) { return 204; }
    if ($request_method !~ ^(GET|HEAD)$) { return 403; }

    # No header of the client goes to an origin: what is not in the key must not change what is kept under it.
    proxy_pass_request_headers off;
    proxy_cache pictures;
    proxy_cache_key $path;
    proxy_ignore_headers Cache-Control Expires;
    proxy_cache_valid 200 365d;
    proxy_force_ranges on;
    proxy_cache_lock on;
    proxy_cache_lock_timeout 60s;
    proxy_cache_lock_age 60s;
    proxy_hide_header X-Cdn-Origin;
    add_header X-Cache $upstream_cache_status always;
    add_header X-Origin $from always;
    add_header Referrer-Policy no-referrer always;
    add_header Access-Control-Allow-Origin * always;
    add_header Access-Control-Expose-Headers "{expose}" always;
    add_header Access-Control-Allow-Methods $methods always; # without a value, there is no header
    add_header Access-Control-Allow-Headers $headers always;
    add_header Access-Control-Max-Age $age always;

    location / {
      proxy_set_header Connection "";
      proxy_set_header Host bucket;
      proxy_pass http://bucket$path;
      proxy_intercept_errors on;
      error_page 404 = @media; # not 403: that is also what auth_request answers
    }
    location ~ /original$ {
      proxy_set_header Connection "";
      proxy_set_header Host media;
      proxy_set_header X-Origin-Secret {secret};
      proxy_pass http://media{prefix}$path;
    }
    location @media {
      proxy_set_header Connection "";
      proxy_set_header Host media;
      proxy_set_header X-Origin-Secret {secret};
      proxy_pass http://media{prefix}$path;
    }
    location = /_verify {
      internal;
      proxy_pass http://verify/;
      proxy_method GET;
      proxy_cache off;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Connection "";
      proxy_set_header X-Original-Uri $request_uri;
      proxy_set_header X-Original-Host $http_host;
    }
  }
}
`
