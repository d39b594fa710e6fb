// Package preference keeps each user's own settings: a free store of JSON values under dotted keys. Nobody sees
// another user's.
//
// Tables: preference.
package preference
