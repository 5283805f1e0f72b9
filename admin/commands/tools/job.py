"""`trimtab job`: the job, with the connector's jars from the cache."""

from __future__ import annotations

import os
from contextlib import suppress

from admin.commands.tools.options import Config
from admin.demo.processes import spark_jars
from admin.ending import end
from admin.exit_codes import FAILED
from deploy.jars import JarError
from streaming.config import InvalidConfig, load_config
from streaming.leader.standby import StandbyOption
from streaming.logs import LogLevelOption


def job(
    config: Config = None,
    standby: StandbyOption = False,
    log_level: LogLevelOption = None,
) -> None:
    """Balance a fleet until stopped: trimtab-job with the connector's jars from the cache."""
    # Imported here: Spark takes a second to import, and doctor must run without it.
    from streaming.job import run

    try:
        # run reports wrong settings.
        with suppress(InvalidConfig):
            if not load_config(config).spark.jars:
                os.environ["TRIMTAB_SPARK__JARS"] = spark_jars()
    except JarError as error:
        raise end(str(error), FAILED) from None
    run(config, standby, log_level)
