// Package starter starts tasks that people name by their type, with what they are about (POST /tasks). Each is the task
// that an operation of its own starts, and needs the permission of that as well; what waits or runs already is not
// started twice.
//
// Tables: none; adds tasks as the slices do.
package starter
