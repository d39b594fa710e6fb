// Package automatch checks and evaluates the conditions of automatic matching (autoMatchConditions of libraries and
// plugins): a task asks a plugin only about series and books that meet them.
//
//   - All rules must hold, or with the mode any, one of them. Without rules the conditions hold.
//   - A rule names a field by its path in the context of a series or book, in camelCase or snake_case.
//   - Texts are compared with upper and lower case; numbers and lists are compared as texts, too.
//   - A missing field satisfies only is_null and the negative operators.
package automatch
