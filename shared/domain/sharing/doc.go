// Package sharing decides who sees which series. Series have sharing tags; users, directly or through their access
// groups, are allowed or denied tags. A user without grants sees everything. A user who is allowed tags sees only
// series with one of them. A denied tag hides a series in any case. The database filters hidden rows
// (migrations/00057_sharing.sql), so that no other package needs to do so.
//
// Tables: sharing_tag, series_sharing_tag, sharing_grant, access_group, access_group_member, access_group_claim,
// access_group_oidc_mapping; reads series and account.
package sharing
