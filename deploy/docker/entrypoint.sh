#!/bin/sh
# What a container of the job's image runs: a command, such as `trimtab job`. Spark on Kubernetes
# starts a SparkApplication's driver with the word "driver" and spark-submit's arguments. There are
# no executors: the job runs its tasks in the driver (spark.master is local).
set -eu

if [ "${1:-}" = driver ]; then
    shift
    set -- "$SPARK_HOME/bin/spark-submit" --deploy-mode client "$@"
fi
exec "$@"
