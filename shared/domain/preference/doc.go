// Package preference stores each user's own settings: JSON values under dotted keys. Nobody sees another user's.
//
// Tables: preference.
package preference
