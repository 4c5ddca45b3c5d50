"""The inventory: fleets, instances, who holds which block, and the projection of runs and jobs."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

STATEMENTS = (
    """
    CREATE TABLE installation (
        singleton BOOLEAN NOT NULL,
        id UUID NOT NULL,
        epoch INTEGER NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        PRIMARY KEY (singleton),
        CONSTRAINT one_row CHECK (singleton)
    )
    """,
    """
    CREATE TABLE projects (
        id UUID NOT NULL,
        name VARCHAR NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        PRIMARY KEY (id),
        UNIQUE (name)
    )
    """,
    """
    CREATE TABLE fleets (
        id UUID NOT NULL,
        project_id UUID NOT NULL,
        name VARCHAR NOT NULL,
        status VARCHAR NOT NULL,
        nodes_min INTEGER NOT NULL,
        nodes_max INTEGER,
        placement VARCHAR NOT NULL,
        blocks INTEGER NOT NULL,
        idle_duration FLOAT,
        requirements JSONB NOT NULL,
        configuration JSONB NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        ended_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (id),
        CONSTRAINT status_known CHECK (status IN ('submitted', 'active', 'terminating', 'terminated', 'failed')),
        CONSTRAINT placement_known CHECK (placement IN ('any', 'cluster')),
        CONSTRAINT nodes CHECK (nodes_min >= 0 AND (nodes_max IS NULL OR nodes_max >= nodes_min)),
        FOREIGN KEY(project_id) REFERENCES projects (id)
    )
    """,
    """
    CREATE UNIQUE INDEX fleets_living_name ON fleets (project_id, name) WHERE status <> 'terminated'
    """,
    """
    CREATE TABLE instances (
        id UUID NOT NULL,
        project_id UUID NOT NULL,
        fleet_id UUID NOT NULL,
        num INTEGER NOT NULL,
        name VARCHAR NOT NULL,
        status VARCHAR NOT NULL,
        reason VARCHAR,
        message VARCHAR NOT NULL,
        backend VARCHAR NOT NULL,
        region VARCHAR NOT NULL,
        offers JSONB NOT NULL,
        offer JSONB,
        failures JSONB DEFAULT '[]' NOT NULL,
        token VARCHAR NOT NULL,
        address VARCHAR,
        total_blocks INTEGER NOT NULL,
        busy_blocks INTEGER NOT NULL,
        idle_duration FLOAT,
        idle_since TIMESTAMP WITH TIME ZONE,
        keep_until TIMESTAMP WITH TIME ZONE,
        heard_at TIMESTAMP WITH TIME ZONE,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        ended_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (id),
        CONSTRAINT status_known
            CHECK (status IN ('pending', 'provisioning', 'idle', 'busy', 'terminating', 'terminated')),
        CONSTRAINT blocks CHECK (busy_blocks BETWEEN 0 AND total_blocks),
        CONSTRAINT some_blocks CHECK (total_blocks > 0),
        CONSTRAINT idle_is_free CHECK (status <> 'idle' OR busy_blocks = 0),
        CONSTRAINT busy_is_held CHECK (status <> 'busy' OR busy_blocks > 0),
        CONSTRAINT gone_is_free CHECK (status <> 'terminated' OR busy_blocks = 0),
        FOREIGN KEY(project_id) REFERENCES projects (id),
        FOREIGN KEY(fleet_id) REFERENCES fleets (id)
    )
    """,
    """
    CREATE INDEX instances_free ON instances (fleet_id, num)
        WHERE busy_blocks < total_blocks AND status IN ('pending', 'provisioning', 'idle', 'busy')
    """,
    """
    CREATE UNIQUE INDEX instances_living_num ON instances (fleet_id, num) WHERE status <> 'terminated'
    """,
    """
    CREATE TABLE runs (
        id UUID NOT NULL,
        project_id UUID NOT NULL,
        name VARCHAR NOT NULL,
        user_name VARCHAR NOT NULL,
        kind VARCHAR NOT NULL,
        status VARCHAR NOT NULL,
        reason VARCHAR,
        message VARCHAR NOT NULL,
        deciding BOOLEAN NOT NULL,
        spec JSONB NOT NULL,
        superseded_by UUID,
        submitted_at TIMESTAMP WITH TIME ZONE NOT NULL,
        recorded_at TIMESTAMP WITH TIME ZONE NOT NULL,
        ended_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (id),
        CONSTRAINT status_known
            CHECK (status IN ('pending', 'submitted', 'provisioning', 'running', 'terminating', 'terminated',
                'failed', 'done')),
        FOREIGN KEY(project_id) REFERENCES projects (id)
    )
    """,
    """
    CREATE INDEX runs_by_age ON runs (project_id, submitted_at DESC)
    """,
    """
    CREATE UNIQUE INDEX runs_living_name ON runs (project_id, name) WHERE ended_at IS NULL AND superseded_by IS NULL
    """,
    """
    CREATE TABLE claims (
        id UUID NOT NULL,
        project_id UUID NOT NULL,
        run_id UUID NOT NULL,
        owner VARCHAR NOT NULL,
        replica INTEGER NOT NULL,
        submission INTEGER NOT NULL,
        nodes INTEGER NOT NULL,
        priority INTEGER NOT NULL,
        requirements JSONB NOT NULL,
        shape VARCHAR NOT NULL,
        wait BOOLEAN NOT NULL,
        idle_duration FLOAT,
        queue_patience FLOAT NOT NULL,
        keep FLOAT NOT NULL,
        status VARCHAR NOT NULL,
        message VARCHAR NOT NULL,
        tried JSONB DEFAULT '[]' NOT NULL,
        queued_at TIMESTAMP WITH TIME ZONE NOT NULL,
        not_before TIMESTAMP WITH TIME ZONE,
        granted_at TIMESTAMP WITH TIME ZONE,
        ended_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (id),
        CONSTRAINT status_known CHECK (status IN ('waiting', 'granted', 'ready', 'refused', 'failed', 'released')),
        CONSTRAINT some_nodes CHECK (nodes > 0),
        FOREIGN KEY(project_id) REFERENCES projects (id),
        FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX claims_of_run ON claims (run_id)
    """,
    """
    CREATE INDEX claims_queue ON claims (project_id, priority DESC, queued_at, id) WHERE status = 'waiting'
    """,
    """
    CREATE TABLE holdings (
        instance_id UUID NOT NULL,
        block INTEGER NOT NULL,
        claim_id UUID NOT NULL,
        node INTEGER NOT NULL,
        quarantined_at TIMESTAMP WITH TIME ZONE,
        quarantined_job UUID,
        PRIMARY KEY (instance_id, block),
        FOREIGN KEY(instance_id) REFERENCES instances (id),
        FOREIGN KEY(claim_id) REFERENCES claims (id)
    )
    """,
    """
    CREATE INDEX holdings_of_claim ON holdings (claim_id, node)
    """,
    """
    CREATE TABLE jobs (
        id UUID NOT NULL,
        run_id UUID NOT NULL,
        replica INTEGER NOT NULL,
        node INTEGER NOT NULL,
        submission INTEGER NOT NULL,
        claim_id UUID NOT NULL,
        instance_id UUID NOT NULL,
        status VARCHAR NOT NULL,
        reason VARCHAR,
        exit_status INTEGER,
        message VARCHAR NOT NULL,
        working_dir VARCHAR NOT NULL,
        username VARCHAR NOT NULL,
        ports JSONB DEFAULT '[]' NOT NULL,
        pull_done BIGINT,
        pull_total BIGINT,
        log_bytes BIGINT NOT NULL,
        log_complete BOOLEAN NOT NULL,
        heard BOOLEAN NOT NULL,
        submitted_at TIMESTAMP WITH TIME ZONE NOT NULL,
        started_at TIMESTAMP WITH TIME ZONE,
        ended_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (id),
        CONSTRAINT status_known
            CHECK (status IN ('submitted', 'provisioning', 'pulling', 'running', 'terminating', 'terminated',
                'aborted', 'failed', 'done')),
        CONSTRAINT one_row_a_submission UNIQUE (run_id, replica, node, submission),
        CONSTRAINT log CHECK (log_bytes >= 0),
        FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX jobs_live ON jobs (run_id) WHERE ended_at IS NULL
    """,
    """
    CREATE TABLE watches (
        job_id UUID NOT NULL,
        worker VARCHAR NOT NULL,
        incarnation UUID NOT NULL,
        token BYTEA NOT NULL,
        PRIMARY KEY (job_id),
        FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX ix_watches_worker ON watches (worker)
    """,
    """
    CREATE TABLE archives (
        sha256 VARCHAR NOT NULL,
        size BIGINT NOT NULL,
        used_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        PRIMARY KEY (sha256)
    )
    """,
    """
    CREATE TABLE events (
        id UUID DEFAULT gen_random_uuid() NOT NULL,
        at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        kind VARCHAR NOT NULL,
        subject_id UUID NOT NULL,
        text VARCHAR NOT NULL,
        PRIMARY KEY (id)
    )
    """,
    """
    CREATE INDEX events_of ON events (subject_id, at)
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
