package pack

import (
	"context"
	"time"
)

// FindBook finds the book of a task.
const FindBook = findBook

// InSteps makes e handle so many packs per step.
func (e *Expirer) InSteps(n int) *Expirer { e.step = n; return e }

// Step is Expire without time for more than a step per tenant.
func (e *Expirer) Step(ctx context.Context, now time.Time) (int, error) {
	return e.until(ctx, now, time.Time{})
}
