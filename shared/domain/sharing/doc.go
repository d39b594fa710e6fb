// Package sharing decides who sees which series. Series carry sharing tags; users, directly or by the access groups
// they belong to, are allowed or denied tags. Whoever has no grant sees everything; whoever is allowed a tag sees only
// series with one they are allowed; what is denied is hidden in any case. The database leaves out what is hidden
// (migrations/00057_sharing.sql), so that no other package has to think of it.
//
// Tables: sharing_tag, series_sharing_tag, sharing_grant, access_group, access_group_member, access_group_oidc_mapping;
// reads series and account.
package sharing
