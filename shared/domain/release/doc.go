// Package release keeps which series are tracked, and what plugins announce of them: new volumes and chapters.
//
//   - Nothing is tracked before people say so. The other titles of a tracked series are told to plugins, too.
//   - A source is what a plugin asks for releases. Plugins name theirs; it is polled by its own schedule or that of the
//     setting, and goes with the plugin.
//   - What a source announces is kept once: by what the source calls it, and in a series by its torrent.
//   - It is announced where it is newer than what there is and what was known, in a language that is tracked; else it
//     is ignored, which people can see and change. What the plugin is not sure enough of, and what is about series that
//     are not tracked, is not kept.
//   - What is known (the latest volume and chapter) moves forward with what is announced, never back.
//   - The plugin is asked by package plugin, which gives its answer to Record.
//
// Tables: series_tracking, series_alias, release_source, release; reads series, book, library, alternate_title,
// external_id, plugin and setting.
package release
