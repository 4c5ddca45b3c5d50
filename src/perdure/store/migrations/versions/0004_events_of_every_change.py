"""Events: every change of a status, written by the database itself in the transaction that makes it.

Triggers, so that no statement can forget, and none makes a round trip more. What was noted before said neither
whose it was nor who did it: it is let go.
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = (
    "DROP TABLE events",
    """
    CREATE TABLE events (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        project_id UUID,
        actor VARCHAR NOT NULL,
        kind VARCHAR NOT NULL,
        subject_id UUID NOT NULL,
        name VARCHAR DEFAULT '' NOT NULL,
        run_id UUID,
        fleet_id UUID,
        instance_id UUID,
        before VARCHAR,
        status VARCHAR,
        reason VARCHAR,
        words VARCHAR DEFAULT '' NOT NULL,
        data JSONB DEFAULT '{}' NOT NULL,
        PRIMARY KEY (id)
    )
    """,
    "CREATE INDEX events_by_age ON events (at)",
    "CREATE INDEX events_of_run ON events (run_id) WHERE run_id IS NOT NULL",
    "CREATE INDEX events_of_fleet ON events (fleet_id) WHERE fleet_id IS NOT NULL",
    "CREATE INDEX events_of_instance ON events (instance_id) WHERE instance_id IS NOT NULL",
    "CREATE INDEX events_of_secret ON events (subject_id) WHERE kind = 'secret'",
    """
    CREATE FUNCTION perdure_actor(otherwise text) RETURNS text LANGUAGE sql STABLE AS $$
        SELECT coalesce(nullif(current_setting('perdure.actor', true), ''), otherwise)
    $$
    """,
    """
    CREATE FUNCTION perdure_note_run() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO events (project_id, actor, kind, subject_id, name, run_id, before, status, reason, words)
        VALUES (NEW.project_id,
                perdure_actor(CASE WHEN TG_OP = 'INSERT' THEN rtrim('user ' || NEW.user_name)
                                   WHEN NEW.reason IN ('stopped_by_user', 'aborted_by_user') THEN 'user'
                                   ELSE 'workflow' END),
                'run', NEW.id, NEW.name, NEW.id,
                CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status, NEW.reason,
                CASE WHEN TG_OP = 'UPDATE' AND NEW.superseded_by IS DISTINCT FROM OLD.superseded_by
                     THEN 'superseded by a later run of its name: ' || NEW.superseded_by ELSE NEW.message END);
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION perdure_note_job() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO events (project_id, actor, kind, subject_id, name, run_id, instance_id, before, status, reason,
                            words, data)
        SELECT r.project_id,
               perdure_actor(CASE WHEN NEW.reason IN ('terminated_by_user', 'aborted_by_user') THEN 'user'
                                  WHEN NEW.exit_status IS NOT NULL THEN 'agent'
                                  ELSE 'workflow' END),
               'job', NEW.id, r.name || '-' || NEW.replica || '-' || NEW.node, r.id, NEW.instance_id,
               CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status, NEW.reason, NEW.message,
               jsonb_build_object('replica', NEW.replica, 'node', NEW.node, 'submission', NEW.submission,
                                  'exit_status', NEW.exit_status)
        FROM runs r WHERE r.id = NEW.run_id;
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION perdure_note_claim() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO events (project_id, actor, kind, subject_id, name, run_id, before, status, words, data)
        SELECT NEW.project_id, perdure_actor('workflow'), 'claim', NEW.id, r.name, r.id,
               OLD.status, NEW.status, NEW.message,
               jsonb_build_object('replica', NEW.replica, 'submission', NEW.submission, 'nodes', NEW.nodes)
        FROM runs r WHERE r.id = NEW.run_id;
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION perdure_note_instance() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        moved boolean := TG_OP = 'INSERT' OR OLD.status <> NEW.status;
    BEGIN
        INSERT INTO events (project_id, actor, kind, subject_id, name, fleet_id, instance_id, before, status,
                            reason, words, data)
        VALUES (NEW.project_id, perdure_actor('workflow'), 'instance', NEW.id, NEW.name, NEW.fleet_id, NEW.id,
                CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status, NEW.reason,
                CASE WHEN moved THEN NEW.message ELSE NEW.failures -> -1 ->> 'why' END,
                jsonb_build_object('backend', NEW.backend, 'region', NEW.region,
                                   'offer', CASE WHEN moved THEN NEW.offer ->> 'instance_type'
                                                 ELSE NEW.failures -> -1 ->> 'offer' END));
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION perdure_note_fleet() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO events (project_id, actor, kind, subject_id, name, fleet_id, before, status, words)
        VALUES (NEW.project_id, perdure_actor('workflow'), 'fleet', NEW.id, NEW.name, NEW.id,
                CASE WHEN TG_OP = 'UPDATE' THEN OLD.status END, NEW.status,
                CASE WHEN TG_OP = 'UPDATE' AND OLD.status = NEW.status THEN 'its configuration is changed'
                     ELSE '' END);
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION perdure_note_secret() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        secret secrets := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    BEGIN
        INSERT INTO events (project_id, actor, kind, subject_id, name, status)
        VALUES (secret.project_id,
                perdure_actor(CASE WHEN TG_OP = 'DELETE' THEN 'user' ELSE rtrim('user ' || secret.updated_by) END),
                'secret', secret.id, secret.name,
                CASE TG_OP WHEN 'INSERT' THEN 'set' WHEN 'UPDATE' THEN 'changed' ELSE 'deleted' END);
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER note_new AFTER INSERT ON runs FOR EACH ROW EXECUTE FUNCTION perdure_note_run()
    """,
    """
    CREATE TRIGGER note_change AFTER UPDATE OF status, superseded_by ON runs FOR EACH ROW
    WHEN (OLD.status <> NEW.status OR OLD.superseded_by IS DISTINCT FROM NEW.superseded_by)
    EXECUTE FUNCTION perdure_note_run()
    """,
    """
    CREATE TRIGGER note_new AFTER INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION perdure_note_job()
    """,
    """
    CREATE TRIGGER note_change AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION perdure_note_job()
    """,
    # Every claim is inserted as waiting; that it has to wait is known when the message says why.
    """
    CREATE TRIGGER note_change AFTER UPDATE OF status, message ON claims FOR EACH ROW
    WHEN (OLD.status <> NEW.status OR NEW.status = 'waiting' AND OLD.message = '' AND NEW.message <> '')
    EXECUTE FUNCTION perdure_note_claim()
    """,
    """
    CREATE TRIGGER note_new AFTER INSERT ON instances FOR EACH ROW EXECUTE FUNCTION perdure_note_instance()
    """,
    """
    CREATE TRIGGER note_change AFTER UPDATE OF status, failures ON instances FOR EACH ROW
    WHEN (OLD.status <> NEW.status OR jsonb_array_length(NEW.failures) > jsonb_array_length(OLD.failures))
    EXECUTE FUNCTION perdure_note_instance()
    """,
    """
    CREATE TRIGGER note_new AFTER INSERT ON fleets FOR EACH ROW EXECUTE FUNCTION perdure_note_fleet()
    """,
    """
    CREATE TRIGGER note_change AFTER UPDATE OF status, configuration ON fleets FOR EACH ROW
    WHEN (OLD.status <> NEW.status OR OLD.configuration <> NEW.configuration)
    EXECUTE FUNCTION perdure_note_fleet()
    """,
    """
    CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON secrets FOR EACH ROW
    EXECUTE FUNCTION perdure_note_secret()
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
