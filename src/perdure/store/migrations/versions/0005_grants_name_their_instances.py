"""Events: a grant says which instances it is of. Of one that was given back, no row tells that any more."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute(
        """
        CREATE OR REPLACE FUNCTION perdure_note_claim() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            about jsonb := jsonb_build_object('replica', NEW.replica, 'submission', NEW.submission,
                                              'nodes', NEW.nodes);
        BEGIN
            IF OLD.status = 'waiting' AND NEW.status IN ('granted', 'ready') THEN
                about := about || jsonb_build_object('instances', (
                    SELECT jsonb_agg(jsonb_build_object('id', i.id, 'name', i.name, 'new', i.status = 'pending')
                                     ORDER BY h.node)
                    FROM (SELECT DISTINCT node, instance_id FROM holdings WHERE claim_id = NEW.id) h
                    JOIN instances i ON i.id = h.instance_id));
            END IF;
            INSERT INTO events (project_id, actor, kind, subject_id, name, run_id, before, status, words, data)
            SELECT NEW.project_id, perdure_actor('workflow'), 'claim', NEW.id, r.name, r.id,
                   OLD.status, NEW.status, NEW.message, about
            FROM runs r WHERE r.id = NEW.run_id;
            RETURN NULL;
        END $$
        """
    )
