// Package plugin keeps plugins, programs of others that know about books, asks them, and writes what they say into
// series and books.
//
//   - A plugin belongs to a tenant, whose administrators add it (PluginsManage). Its processes run elsewhere (package plug);
//     what it may be started with is the operator's word (PLUGIN_COMMANDS).
//   - Credentials are sealed: the database cannot read them, and no answer has them.
//   - Every request is counted. Three failures within an hour disable a plugin, unless it was enabled or reset in between;
//     that it does not know something, or takes no more requests for a while, is no failure.
//   - What a plugin says goes into a field that it may write (its permissions) and that nobody has locked. What cannot be
//     used (no such language, no picture) is left out, with the reason.
//   - Locks are looked at before a plugin is asked, and again when its answer is written: whoever locks a field meanwhile
//     wins (app.check_locks).
//   - A series is matched in this order: for tasks what its library and the plugin demand of it, the id that it has of
//     the plugin already, and else the best answer to its title that is at least as sure as
//     plugins.auto_match_confidence_threshold.
//
// Tables: plugin, plugin_failure, plugin_method; reads library and setting; writes series and books by their packages.
package plugin
