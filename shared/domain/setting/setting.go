package setting

import (
	"time"

	"github.com/google/uuid"
)

// Setting is a setting with its value in this tenant, as a string regardless of its type.
type Setting struct {
	ID            uuid.UUID  `json:"id"`
	Key           string     `json:"key"`
	Value         string     `json:"value"`
	ValueType     string     `json:"valueType" enum:"String,Integer,Float,Boolean,Array"`
	Category      string     `json:"category"`
	Description   string     `json:"description"`
	DefaultValue  string     `json:"defaultValue"`
	MinValue      *int64     `json:"minValue" doc:"Minimum of a number, or minimum length of a string in characters"`
	MaxValue      *int64     `json:"maxValue" doc:"Maximum of a number, or maximum length of a string in characters"`
	AllowedValues []string   `json:"allowedValues" nullable:"true" doc:"Allowed values; null if there is no such list"`
	IsSensitive   bool       `json:"isSensitive"`
	Version       int32      `json:"version" doc:"Starts at 1 on installation and increases by 1 with every write"`
	UpdatedAt     time.Time  `json:"updatedAt"`
	UpdatedBy     *uuid.UUID `json:"updatedBy"`
}

// Change is one line of the history of a setting.
type Change struct {
	ID           uuid.UUID  `json:"id" db:"id"`
	SettingID    uuid.UUID  `json:"settingId" db:"-"`
	Key          string     `json:"key" db:"key"`
	OldValue     string     `json:"oldValue" db:"old_value"`
	NewValue     string     `json:"newValue" db:"new_value"`
	ChangedBy    *uuid.UUID `json:"changedBy" db:"changed_by"`
	ChangedAt    time.Time  `json:"changedAt" db:"changed_at"`
	ChangeReason *string    `json:"changeReason" db:"change_reason"`
	IPAddress    *string    `json:"ipAddress" db:"ip_address"`
}

// Public is a setting as every signed-in user sees it.
type Public struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Branding is what the sign-in page shows.
type Branding struct {
	ApplicationName string `json:"applicationName"`
}

// record is the row of a setting that was written at least once.
type record struct {
	Key       string     `db:"key"`
	Value     string     `db:"value"`
	Version   int32      `db:"version"`
	UpdatedAt time.Time  `db:"updated_at"`
	UpdatedBy *uuid.UUID `db:"updated_by"`
}

// from joins a definition with its record, if there is one; since is the time of a default.
func (d *definition) from(records map[string]record, since time.Time) Setting {
	s := Setting{ID: d.id(), Key: d.Key, Value: d.Default, ValueType: d.Type, Category: d.Category, Description: d.Description,
		DefaultValue: d.Default, MinValue: d.Min, MaxValue: d.Max, AllowedValues: d.Allowed, Version: 1, UpdatedAt: since}
	if r, ok := records[d.Key]; ok {
		s.Value, s.Version, s.UpdatedAt, s.UpdatedBy = r.Value, r.Version, r.UpdatedAt, r.UpdatedBy
	}
	return s
}
