// Package schedule starts work by cron schedules. Due serves a schedule that is a setting of the tenant. Slices that
// keep their schedules in rows of their own (release sources, jobs, exports) use Each and Add. Changed calls back once
// per change of a setting.
//
// Tables: setting_schedule; reads setting and tenant.
package schedule
