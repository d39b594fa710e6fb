package scan

// OnStartBy is OnStart with so many libraries read at once.
var OnStartBy = onStart
