package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/noetl/noetl-go/internal/tool"
)

// Dial opens a connection of its own for a tool that copies rows. It is
// described by the fields of a step of kind postgres; whoever asks closes it.
func Dial(ctx context.Context, call *tool.Call, described tool.Fields) (*pgconn.PgConn, error) {
	login, err := call.Login(ctx, described)
	if err != nil {
		return nil, err
	}
	where, err := readTarget(call, described, login)
	if err != nil {
		return nil, err
	}
	path, err := searchPath(described, login)
	if err != nil {
		return nil, err
	}
	config, err := where.config()
	if err != nil {
		return nil, err
	}
	if path != "" {
		config.RuntimeParams["search_path"] = path
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, connectFailure(where, err)
	}
	return conn, nil
}

// Classify explains an error of a connection from Dial.
func Classify(err error) *tool.Error {
	if known, ok := errors.AsType[*tool.Error](err); ok {
		return known
	}
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classify(answer)
	}
	return &tool.Error{Kind: tool.KindDBConnection, Code: "PG_CONNECTION_LOST", Message: "the connection to PostgreSQL was lost", Retryable: true}
}
