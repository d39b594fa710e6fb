// Package setting stores what a tenant's administrators may change at run time: a fixed list of keys, each with a type,
// a default and bounds. A key without a row has its default. Every write increments the version and adds a line to the
// history: who, when, from where and why.
//
// Other packages read a setting in their own batch with Value, Bool or Int. Package schedule starts what a setting
// schedules.
//
// Tables: setting, setting_history; reads tenant.
package setting
