// Package operator is what the operator of an installation does to its tenants: create, list, show, suspend, resume,
// export and delete them, give them hosts, library roots, quotas and identity providers, and make new keys. It is no
// part of the HTTP interface: functions/operator is invoked by IAM only, or run as a command on one machine.
//
// One command is one struct of input and one record of output, the same for both ways (Commands). Errors name the wrong
// input. Every command may be repeated, though create and revoke-roots then refuse; delete and rotate-keys continue
// where they were interrupted.
//
// Rules: a tenant that is suspended or being deleted is refused everywhere (httpapi, app.hold_task, claims of tasks,
// schedules). Deleting and exporting read the catalogue of the database, so that no new table is forgotten: every table
// with tenant_id belongs to its tenant. Files of libraries are never touched.
//
// Tables: writes tenant, library_root, bytes of rendition_usage, and, deleting, every table; show reads account,
// library, library_count and task, export every table. It works as the role longbox_system.
package operator
