// Package plugin keeps plugins, programs of others that know about books, asks them, and writes what they say into
// series and books.
//
//   - A plugin belongs to a tenant, whose administrators add it (PluginsManage). Its processes run elsewhere (package
//     plug); what it may be started with is the operator's word (PLUGIN_COMMANDS).
//   - Credentials are sealed: the database cannot read them, and no answer has them.
//   - Every request is counted. Three failures within an hour disable a plugin, unless it was enabled or reset in
//     between; that it does not know something, or takes no more requests for a while, is no failure.
//   - What a plugin says goes into a field that it may write (its permissions) and that nobody has locked. What cannot
//     be used (no such language, no picture) is left out, with the reason.
//   - Locks are looked at before a plugin is asked, and again when its answer is written: whoever locks a field
//     meanwhile wins (app.check_locks).
//   - A series is matched in this order: for tasks what its library and the plugin demand of it, the id that it has of
//     the plugin already, and else the best answer to its title that is at least as sure as
//     plugins.auto_match_confidence_threshold.
//   - A job of a library (library_job) asks a plugin about all that is in it, by a schedule. Its run is one task, which
//     keeps its place and goes on there, and lets others have the worker every minute.
//   - A plugin that announces releases is polled by tasks; package release keeps what it says.
//
// Plugins of the type user are enabled by each user for themselves, and asked in their name (the files user_….go):
//
//   - Each user has a process of their own, their credentials are sealed, and what a plugin keeps for a user comes with
//     each request and goes back with its answer (package plug).
//   - What a plugin has written to its folder goes once nobody has the plugin any more (SweepFolders).
//   - Tasks are done in the name of the user (db.Acting): what is hidden from them is neither told nor written.
//   - A failure is noted for the user alone.
//   - Progress is taken over from a service before it is told there. Nothing becomes unread by it.
//
// Tables: plugin, plugin_failure, plugin_method, plugin_schedule, library_job, user_plugin, user_plugin_data,
// user_plugin_sign_in; updated_at of series; reads library, setting, task and what users have read. What plugins say of
// series, books, progress, ratings and releases is written by the packages of these.
package plugin
