// Package plugin manages plugins, which are external programs that provide metadata: it sends them requests and writes
// the results to series and books.
//
//   - A plugin belongs to a tenant, whose administrators add it (PluginsManage). Its processes run elsewhere (package
//     plug); the operator decides which commands are allowed (PLUGIN_COMMANDS).
//   - Credentials are encrypted: the database cannot read them, and no response contains them.
//   - Every request is counted. Three failures within an hour disable a plugin, unless it was enabled or reset in
//     between. "Not found" and "rate limited" are not failures.
//   - A value is written only to a field that the plugin may write (its permissions) and that nobody has locked. An
//     unusable value (unknown language, no picture) is skipped, with the reason.
//   - Locks are checked before a request, and again when its result is written: a lock set in between wins
//     (app.check_locks).
//   - A series is matched in this order: for tasks, the conditions of its library and of the plugin; then the id that
//     it already has from the plugin; else the best search result for its title, if its score reaches
//     plugins.auto_match_confidence_threshold.
//   - A job of a library (library_job) asks a plugin about everything in the library, by a schedule. Its run is one
//     task with a checkpoint, which yields the worker to others every minute.
//   - A plugin that announces releases is polled by tasks; package release stores the results.
//
// Plugins of the type user are enabled by each user for themselves, and called in their name (the files user_….go):
//
//   - Each user has a process of their own, and their credentials are encrypted. What a plugin stores for a user is
//     sent with each request and returned with the response (package plug).
//   - The folder of a plugin is deleted once nobody uses the plugin any more (SweepFolders).
//   - Tasks act as the user (db.Acting): what is hidden from the user is neither sent nor written.
//   - A failure is recorded for the user only.
//   - Progress is first pulled from a service, then pushed to it. A sync never marks anything as unread.
//
// Tables: plugin, plugin_failure, plugin_method, plugin_schedule, library_job, user_plugin, user_plugin_data,
// user_plugin_sign_in; updated_at of series; reads library, setting, task and what users have read. What plugins say of
// series, books, progress, ratings and releases is written by the packages of these.
package plugin
