// Package operator contains the commands by which the operator of an installation manages tenants: create, list, show,
// suspend, resume, export and delete them, set hosts, library roots, quotas, passwords and identity providers, and
// rotate keys. It is not part of the HTTP interface: functions/operator is invoked by IAM only, or run as a command on
// one machine.
//
// A command has one input struct and one output record, the same for both ways (Command). Errors name the invalid
// input. Every command may be repeated, though create and revoke-roots then refuse; delete and rotate-keys continue
// after an interruption.
//
// Rules: a tenant that is suspended or being deleted is refused everywhere (httpapi, app.hold_task, claims of tasks,
// schedules). Delete and export read the catalogue of the database, so that no new table is forgotten: every table with
// tenant_id belongs to its tenant. Files of libraries are never touched.
//
// Tables: writes tenant, library_root, bytes of rendition_usage, and, deleting, every table; show reads account,
// library, library_count and task, export every table. It works as the role longbox_system.
package operator
