package taxonomy

// CountUsed is the statement that counts genres.
var CountUsed = "select count(*) from genre t where t.tenant_id = app.tenant() and " + genres.used()
