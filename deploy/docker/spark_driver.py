"""What spark-submit runs as a SparkApplication's driver: `trimtab` with its arguments.

spark-submit takes a file, not a console script, and puts the file's folder on Python's path: so it
must not be one of a package.
"""

from admin.main import main

main()
