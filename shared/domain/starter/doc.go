// Package starter starts tasks by type and target (POST /tasks). Each is also started by an operation of its own, and
// requires that operation's permission as well; a pending or running task is not started twice.
//
// Tables: none; adds tasks through the other packages.
package starter
