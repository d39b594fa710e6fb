package account

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// signedIn is the account of a session that was just stored.
type signedIn struct {
	UserInfo
	Generation int32 `db:"generation"`
}

// maxTokens is the maximum number of tokens per account, used ones included: enough for some 16 devices that refresh
// daily.
const maxTokens = 500

// signInSQL records the sign-in of account $1, unless it has changed since its credential was checked at generation $2.
const signInSQL = `update account set last_login_at = now()
			where tenant_id = app.tenant() and id = $1 and is_active and generation = $2
			returning id, username, email, role, email_verified, permissions, generation`

// queueSession records a sign-in, as signInSQL does, with a new token family.
func queueSession(b *pgx.Batch, who **signedIn, account uuid.UUID, generation int32, t newToken) {
	db.One(b, who, `with me as (
			`+signInSQL+`),
		added as (
			insert into refresh_token (tenant_id, id, account_id, family_id, hash, expires_at)
			select app.tenant(), $3, me.id, $3, $4, $5 from me)
		select id, username, email, role, email_verified, permissions, generation from me`,
		account, generation, t.id, t.hash, t.expires)
	queueTrim(b, t)
}

// queueTrim deletes the expired and excess tokens of the account that got the token: used ones first, so that a client
// that refreshes often does not end the sessions of others.
func queueTrim(b *pgx.Batch, t newToken) {
	b.Queue(`with mine as (
			select id, expires_at, row_number() over (order by used_at is not null, created_at desc, id desc) as age from refresh_token
			where tenant_id = app.tenant() and account_id = (select account_id from refresh_token where tenant_id = app.tenant() and id = $1))
		delete from refresh_token r using mine
		where r.tenant_id = app.tenant() and r.id = mine.id and (mine.expires_at < now() or mine.age > $2)`, t.id, maxTokens)
}

// queueRenew uses up a token and stores its successor. If that fails although the token is known, it was used before:
// then the family is deleted. The account is locked before its tokens, as by writers of the account: a refresh either
// precedes the change and its token is deleted, or follows it. Refreshes of an account follow each other, too: of two
// requests with one token the slower one ends the family, including the new token of the faster one.
func queueRenew(b *pgx.Batch, who **signedIn, hash []byte, t newToken) {
	b.Queue(`select from account where tenant_id = app.tenant()
		and id = (select account_id from refresh_token where tenant_id = app.tenant() and hash = $1) for no key update`, hash)
	db.One(b, who, `with me as (
			select a.id, a.username, a.email, a.role, a.email_verified, a.permissions, a.generation from account a
			where a.tenant_id = app.tenant() and a.is_active
				and a.id = (select account_id from refresh_token where tenant_id = app.tenant() and hash = $1)),
		used as (
			update refresh_token r set used_at = now() from me
			where r.tenant_id = app.tenant() and r.hash = $1 and r.account_id = me.id and r.used_at is null and r.expires_at > now()
			returning r.family_id, me.*),
		added as (
			insert into refresh_token (tenant_id, id, account_id, family_id, hash, expires_at)
			select app.tenant(), $2, used.id, used.family_id, $3, $4 from used)
		select id, username, email, role, email_verified, permissions, generation from used`,
		hash, t.id, t.hash, t.expires)
	b.Queue(`delete from refresh_token where tenant_id = app.tenant()
		and family_id = (select family_id from refresh_token where tenant_id = app.tenant() and hash = $1 and used_at is not null)
		and not exists (select from refresh_token where tenant_id = app.tenant() and id = $2)`, hash, t.id)
	queueTrim(b, t)
}

// queueEnd deletes the caller's token family, after the end of a refresh that is under way.
func queueEnd(b *pgx.Batch, hash []byte) {
	b.Queue("select from account where tenant_id = app.tenant() and id = app.account() for no key update")
	b.Queue(`delete from refresh_token where tenant_id = app.tenant() and account_id = app.account()
		and family_id = (select family_id from refresh_token where tenant_id = app.tenant() and account_id = app.account() and hash = $1)`, hash)
}
