package pack

// ExpireInSteps is Expire with a number of packs per step.
var ExpireInSteps = expireAll
