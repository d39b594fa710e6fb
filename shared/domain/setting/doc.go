// Package setting keeps what a tenant's administrators may change while the server runs: a fixed list of keys,
// each with a type, a default and bounds. A key without a row has its default. Every write raises the version
// and leaves a line in the history: who, when, from where and why.
//
// Other slices read a setting in their own batch with Value, Bool or Int, and start what a schedule among them wants
// with Due. What depends on a setting otherwise follows it with Changed.
//
// Tables: setting, setting_history, setting_schedule; reads tenant.
package setting
