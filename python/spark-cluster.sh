#!/usr/bin/env bash
# Starts a standalone Spark cluster on loopback, a master and two workers of one core, runs a command with
# its address in SPARK_MASTER, and stops the cluster:
#   python/spark-cluster.sh sh -c 'python -m resemblance.spark --master "$SPARK_MASTER" pairs …'
# It needs Java and a Python (PYTHON, else python3) with pyspark and resemblance.
set -euo pipefail

python=$(command -v "${PYTHON:-python3}")
home=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
port=${SPARK_MASTER_PORT:-7077}
export SPARK_HOME=$home SPARK_LOCAL_IP=127.0.0.1 PYSPARK_PYTHON=$python
export SPARK_MASTER=spark://127.0.0.1:$port

folder=$(mktemp -d)
started=()
stop() {
  # The workers first, so that they do not look for a master that is gone.
  for ((n = ${#started[@]} - 1; n >= 0; n--)); do
    kill "${started[n]}" 2>/dev/null || true
    wait "${started[n]}" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap stop EXIT

"$home/bin/spark-class" org.apache.spark.deploy.master.Master \
  --host 127.0.0.1 --port "$port" --webui-port 0 >"$folder/master.log" 2>&1 &
started+=($!)
for worker in 1 2; do
  "$home/bin/spark-class" org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --webui-port 0 \
    --cores 1 --memory 1g --work-dir "$folder/worker-$worker" "$SPARK_MASTER" \
    >"$folder/worker-$worker.log" 2>&1 &
  started+=($!)
done
for worker in 1 2; do
  for ((second = 0; second < 180; second++)); do
    grep -q 'Successfully registered with master' "$folder/worker-$worker.log" && continue 2
    sleep 1
  done
  printf 'worker %s did not find the master:\n' "$worker" >&2
  cat "$folder"/*.log >&2
  exit 1
done
"$@"
