package scan

// OnStartBy is OnStart with that many libraries per query.
var OnStartBy = onStart
