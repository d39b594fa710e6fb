package account

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/mail"
)

// verificationLife is how long the link in a mail is valid.
const verificationLife = 24 * time.Hour

// register creates a reader, if the tenant allows it: signed in immediately, or inactive until the e-mail address is
// confirmed.
func (s *service) register(ctx context.Context, n Registration) (*RegisterResponse, error) {
	if err := fault.InvalidFields(n.Check()); err != nil {
		return nil, err
	}
	var b pgx.Batch
	var enabled, confirm bool
	setting.Bool(&b, setting.RegistrationEnabled, &enabled)
	setting.Bool(&b, setting.ConfirmEmail, &confirm)
	if err := s.database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !enabled {
		return nil, fault.New(fault.Forbidden, "Registration is switched off; ask an administrator for an account")
	}
	in := toStore{id: uuid.Must(uuid.NewV7()), Registration: n, hash: auth.HashPassword(n.Password), role: auth.Reader,
		active: !confirm, verified: !confirm, claimed: !confirm}
	if !confirm {
		if _, err := insertUser(ctx, s.database, in, nil); err != nil {
			return nil, err
		}
		access, err := SignIn(ctx, s.database, s.tokens, in.id, 1)
		if err != nil {
			return nil, err
		}
		return &RegisterResponse{AccessToken: &access.AccessToken, TokenType: &access.TokenType, ExpiresIn: &access.ExpiresIn,
			User: access.User, Message: "Welcome"}, nil
	}
	token, hash := auth.NewSecret()
	user, err := insertUser(ctx, s.database, in, hash)
	if err != nil {
		return nil, err
	}
	if err := s.sendVerification(ctx, user.Username, user.Email, token); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The account was created, but the mail to confirm the address could not be sent; ask for it again with POST /api/v1/auth/resend-verification")
	}
	return &RegisterResponse{User: UserInfo{ID: user.ID, Username: user.Username, Email: user.Email, Role: user.Role,
		EmailVerified: false, Permissions: user.Permissions}, Message: "Follow the link in the mail that was sent to you, then sign in"}, nil
}

// verify activates the account of a verification token, and signs in.
func (s *service) verify(ctx context.Context, token string) (*VerifyResponse, error) {
	found, err := useVerification(ctx, s.database, auth.HashSecret(token))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.Invalid("token", "is unknown, used or older than 24 hours; ask for a new mail with POST /api/v1/auth/resend-verification")
	}
	s.bump(ctx, httpapi.TenantOf(ctx).ID)
	access, err := SignIn(ctx, s.database, s.tokens, found.ID, found.Generation)
	if err != nil {
		return nil, err
	}
	return &VerifyResponse{Access: *access, Message: "The e-mail address is confirmed"}, nil
}

// evenly is the minimum response time of a request for another mail; most mail servers are faster. Otherwise the time
// would reveal whether a mail was sent.
var evenly = time.Second

// resend sends another link to an account that waits for confirmation. The response is the same in every case, so that
// it does not reveal which addresses are known.
func (s *service) resend(ctx context.Context, email string) (*ResendResponse, error) {
	email = strings.TrimSpace(email)
	if msg := emailFault(email); msg != "" {
		return nil, fault.Invalid("email", "%s", msg)
	}
	answer := time.NewTimer(evenly)
	defer answer.Stop()
	token, hash := auth.NewSecret()
	waiting, err := renewVerification(ctx, s.database, email, hash)
	if err != nil {
		return nil, err
	}
	if waiting != nil {
		if err := s.sendVerification(ctx, waiting.Username, waiting.Email, token); err != nil {
			// An error response would reveal that the address is known.
			slog.WarnContext(ctx, "the mail that confirms an address was not sent", "error", fault.Line(err.Error()))
		}
	}
	select {
	case <-answer.C:
	case <-ctx.Done():
	}
	return &ResendResponse{Message: "If an account with this address waits for confirmation, a mail is on its way; ask again after a minute if it does not arrive"}, nil
}

func (s *service) sendVerification(ctx context.Context, username, email, token string) error {
	base := strings.TrimSuffix(strings.ReplaceAll(s.publicURL, "{tenant}", httpapi.TenantOf(ctx).Name), "/")
	return s.mail.Send(ctx, mail.Message{To: email, Subject: "Confirm your e-mail address", Text: "Hello " + username + ",\n\n" +
		"confirm within 24 hours that this address is yours:\n\n" + base + "/verify-email?token=" + url.QueryEscape(token) + "\n\n" +
		"If your reading app asks for a code, it is:\n\n" + token + "\n\n" +
		"If you did not register, ignore this message.\n"})
}
