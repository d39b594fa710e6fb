package operator

import (
	"context"
	"errors"
	"time"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// RotateKeys names the tenant whose keys to rotate.
type RotateKeys struct {
	Name   string `json:"name"`
	Resume bool   `json:"resume" arg:"resume" help:"create no new secret; only continue to delete the images that the old one named"`
}

// Cleared counts what was deleted from the media bucket. Done is false if the invocation's time was up: call again with
// resume.
type Cleared struct {
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
	Done    bool  `json:"done"`
}

// rotateKeys gives the tenant a new secret. The keys of covers and page renditions derive from it: old objects are
// never found again, so leaked addresses lead nowhere once the objects are deleted, and each picture is made again on
// its next request. Sessions and API keys stay.
func (o *Operator) rotateKeys(ctx context.Context, i RotateKeys) (any, error) {
	t, err := o.alive(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	announced := true
	if !i.Resume {
		if _, err := db.Exec(in(ctx, t), o.System, "update tenant set secret = $1, secret_at = now() where id = app.tenant()", newSecret()); err != nil {
			return nil, err
		}
		announced = o.announce(ctx, t)
		if t, err = o.find(ctx, i.Name); err != nil {
			return nil, err
		}
	} else if t.SecretAt.Equal(t.CreatedAt) {
		return nil, fault.Invalid("resume", "the tenant's keys were never rotated; call rotate-keys without resume")
	}
	// Until then another process may still store objects under the old secret.
	if err := o.settled(ctx, t.SecretAt); err != nil {
		return nil, err
	}
	cleared, refused := o.clearRenditions(ctx, t, t.SecretAt.Add(o.Settle))
	_, err = db.Exec(in(ctx, t), o.System, "update rendition_usage set bytes = greatest(bytes - $1, 0) where tenant_id = app.tenant()", cleared.Bytes)
	if err := errors.Join(refused, err); err != nil {
		return nil, err
	}
	d, err := o.details(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	d.Announced, d.Cleared = &announced, cleared
	return d, nil
}

// clearRenditions deletes the renditions that were stored up to a time. Page packs stay: their rows hold their keys.
func (o *Operator) clearRenditions(ctx context.Context, t *row, upTo time.Time) (c *Cleared, err error) {
	c = &Cleared{}
	prefixes := []string{t.ID.String() + "/cover/", blob.Expiring + t.ID.String() + "/"}
	before := upTo.Add(time.Second) // stores report whole seconds
	c.Done, err = o.clear(ctx, prefixes, before, func(d blob.Deleted) error {
		c.Objects, c.Bytes = c.Objects+d.Objects, c.Bytes+d.Bytes
		return nil
	})
	return c, err
}
