package operator

import (
	"cmp"
	"context"
	"crypto/rand"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Limits.
const (
	maxHosts = 50
	maxRoots = 100
	noLimit  = -1 // as a quota in the input
)

// Create describes a tenant to create.
type Create struct {
	Name           string   `json:"name"`
	Hosts          []string `json:"hosts" arg:"host" help:"a host name that the tenant answers to, besides its own name; may be repeated"`
	Roots          []string `json:"roots" arg:"root" help:"/folder=bucket/prefix or s3://bucket/prefix that the tenant may create libraries in; may be repeated"`
	Admin          string   `json:"admin" arg:"admin" help:"user name of the first administrator; default: whoever opens /setup first creates one"`
	AdminEmail     string   `json:"adminEmail" arg:"admin-email" help:"e-mail address of the administrator; default: name@localhost.localdomain"`
	AdminPassword  string   `json:"adminPassword" arg:"admin-password" help:"password of the administrator, which other users of this machine can see; default: a new one, shown once"`
	Books          *int64   `json:"books" arg:"books" help:"maximum number of books; default: -1 (no limit)"`
	RenditionBytes *int64   `json:"renditionBytes" arg:"rendition-bytes" help:"maximum number of bytes in the media bucket; default: -1 (no limit)"`
	Scans          *int64   `json:"scans" arg:"scans" help:"maximum number of scans at once; default: -1 (no limit)"`
	Requests       *int64   `json:"requests" arg:"requests" help:"maximum number of requests a second of all users; default: -1 (no limit)"`
}

// Login is a user with a new password. The password is present only if it was generated here.
type Login struct {
	Username string `json:"username"`
	Email    string `json:"email"`
	Password string `json:"password,omitempty"`
}

func (o *Operator) create(ctx context.Context, i Create) (any, error) {
	if err := checkName(i.Name); err != nil {
		return nil, err
	}
	hosts, err := checkHosts(i.Hosts)
	if err != nil {
		return nil, err
	}
	roots, err := checkRoots(i.Roots)
	if err != nil {
		return nil, err
	}
	q := Quotas{i.Books, i.RenditionBytes, i.Scans, i.Requests}
	if err := q.check(); err != nil {
		return nil, err
	}
	admin, first, err := i.first()
	if err != nil {
		return nil, err
	}
	id, secret := uuid.Must(uuid.NewV7()), newSecret()
	var b pgx.Batch
	b.Queue(`insert into tenant (id, name, hosts, secret, max_books, max_rendition_bytes, max_scans, max_requests)
		values ($1, $2, $3, $4, nullif($5::bigint, -1), nullif($6::bigint, -1), nullif($7::bigint, -1), nullif($8::bigint, -1))`,
		id, i.Name, hosts, secret, q.Books, q.RenditionBytes, q.Scans, q.Requests)
	queueRoots(&b, roots)
	if first != nil {
		var made int64
		account.AddFirst(&b, *first, &made)
	}
	err = o.System.Run(db.In(ctx, db.Tenant(id)), &b)
	if db.Conflict(err, "tenant_name_key") {
		return nil, fault.Taken("name", "name: there is already a tenant %q", i.Name)
	}
	if err != nil {
		return nil, err
	}
	d, err := o.details(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	d.Admin = admin
	return d, nil
}

// first returns the validated administrator to create; nil if none is requested.
func (i Create) first() (*Login, *account.Registration, error) {
	if i.Admin == "" {
		for _, f := range [][2]string{{"adminEmail", i.AdminEmail}, {"adminPassword", i.AdminPassword}} {
			if f[1] != "" {
				return nil, nil, fault.Invalid("admin", "is required with %s", f[0])
			}
		}
		return nil, nil, nil
	}
	a := &Login{Username: i.Admin, Email: cmp.Or(i.AdminEmail, account.LocalAddress(i.Admin))}
	password := i.AdminPassword
	if password == "" {
		password = rand.Text()
		a.Password = password
	}
	n := account.Registration{Username: a.Username, Email: a.Email, Password: password}
	bad := n.Check()
	for k := range bad { // renamed to the fields of this input
		bad[k].Field = map[string]string{"username": "admin", "email": "adminEmail", "password": "adminPassword"}[bad[k].Field]
	}
	return a, &n, fault.InvalidFields(bad)
}

func newSecret() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	return secret
}

var hostShape = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// checkHosts validates and normalizes host names for comparison with requests.
func checkHosts(hosts []string) ([]string, error) {
	out := []string{}
	for _, h := range hosts {
		clean := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(h), "."))
		if len(clean) > 253 || !hostShape.MatchString(clean) {
			return nil, fault.Invalid("hosts", "%q is not a host name (use no scheme, port or path; write international names as xn--…)", h)
		}
		if !slices.Contains(out, clean) {
			out = append(out, clean)
		}
	}
	if len(out) > maxHosts {
		return nil, fault.Invalid("hosts", "has %d names, at most %d are allowed", len(out), maxHosts)
	}
	return out, nil
}

func checkRoots(roots []string) ([]filesystem.Root, error) {
	if len(roots) > maxRoots {
		return nil, fault.Invalid("roots", "has %d folders, at most %d are allowed", len(roots), maxRoots)
	}
	var out []filesystem.Root
	for _, text := range roots {
		r, err := filesystem.ParseRoot(text)
		if err != nil {
			return nil, fault.Invalid("roots", "%v", err)
		}
		out = append(out, r)
	}
	return out, nil
}

func queueRoots(b *pgx.Batch, roots []filesystem.Root) {
	for _, r := range roots {
		b.Queue(`insert into library_root (tenant_id, path, bucket, prefix) values (app.tenant(), $1, $2, $3)
			on conflict (tenant_id, path) do update set bucket = excluded.bucket, prefix = excluded.prefix`, r.Path, r.Bucket, r.Prefix)
	}
}
