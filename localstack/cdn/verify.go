package cdn

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Verifier checks signed URLs like CloudFront, for nginx's auth_request. It answers 204 or 403.
type Verifier struct {
	Scheme string // of signed URLs
	Keys   map[string]*rsa.PublicKey
	Now    func() time.Time
}

// ServeHTTP verifies X-Original-Uri and X-Original-Host.
func (v Verifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := v.Verify(r.Header.Get("X-Original-Host"), r.Header.Get("X-Original-Uri")); err != nil {
		w.Header().Set("X-Reason", err.Error())
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// unescape decodes CloudFront's URL-safe base64.
var unescape = strings.NewReplacer("-", "+", "_", "=", "~", "/")

func decode(s string) ([]byte, error) {
	if strings.ContainsAny(s, "+/=") {
		return nil, errors.New("not URL-safe base64")
	}
	return base64.StdEncoding.Strict().DecodeString(unescape.Replace(s))
}

// statement is one statement of a policy.
type statement struct {
	Resource  string
	Condition struct {
		DateLessThan, DateGreaterThan struct {
			Time int64 `json:"AWS:EpochTime"`
		}
		IPAddress *struct{} `json:"IpAddress"` // never signed by Longbox
	}
}

// Verify checks the URL of a request. The signature covers scheme, host, path and the query without the signature
// itself.
func (v Verifier) Verify(host, uri string) error {
	path, query, _ := strings.Cut(uri, "?")
	signed, rest := map[string]string{}, []string{}
	for _, p := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(p, "=")
		switch name {
		case "Expires", "Policy", "Signature", "Key-Pair-Id":
			if _, twice := signed[name]; twice {
				return fmt.Errorf("%s appears twice", name)
			}
			signed[name] = value
		case "":
		default:
			rest = append(rest, p)
		}
	}
	resource := v.Scheme + "://" + host + path
	if len(rest) > 0 {
		resource += "?" + strings.Join(rest, "&")
	}
	key, ok := v.Keys[signed["Key-Pair-Id"]]
	if !ok {
		return errors.New("unknown key")
	}
	signature, err := decode(signed["Signature"])
	if err != nil {
		return errors.New("the signature cannot be decoded")
	}
	policy := []byte(`{"Statement":[{"Resource":"` + resource + `","Condition":{"DateLessThan":{"AWS:EpochTime":` + signed["Expires"] + `}}}]}`)
	_, canned := signed["Expires"]
	if encoded, custom := signed["Policy"]; custom == canned {
		return errors.New("needs either Expires or Policy")
	} else if custom {
		if policy, err = decode(encoded); err != nil {
			return errors.New("the policy cannot be decoded")
		}
	} else if _, err := strconv.ParseInt(signed["Expires"], 10, 64); err != nil {
		return errors.New("the time in Expires is not a number")
	}
	sum := sha1.Sum(policy)
	if rsa.VerifyPKCS1v15(key, crypto.SHA1, sum[:], signature) != nil {
		return errors.New("wrong signature")
	}
	var p struct{ Statement []statement }
	d := json.NewDecoder(bytes.NewReader(policy))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || len(p.Statement) != 1 || p.Statement[0].Condition.IPAddress != nil {
		return errors.New("the policy has an unsupported form")
	}
	s, now := p.Statement[0], v.Now().Unix()
	switch {
	case now >= s.Condition.DateLessThan.Time:
		return errors.New("expired")
	case now < s.Condition.DateGreaterThan.Time:
		return errors.New("not yet valid")
	case canned && s.Resource != resource, !canned && !match(s.Resource, resource):
		return errors.New("signed for another address")
	}
	return nil
}

// match matches s against a pattern of * and ?.
func match(pattern, s string) bool {
	for i := range len(pattern) {
		switch c := pattern[i]; {
		case c == '*':
			for j := i; j <= len(s); j++ {
				if match(pattern[i+1:], s[j:]) {
					return true
				}
			}
			return false
		case i >= len(s) || (c != '?' && c != s[i]):
			return false
		}
	}
	return len(pattern) == len(s)
}
