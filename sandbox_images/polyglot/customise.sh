#!/bin/sh
# Runs inside the new root, as root, after python's (see `base`).
set -eu
export LC_ALL=C.UTF-8

# The table: python's languages, these, and other names for some (a name where a table is expected).
python3 - <<'PYTHON'
import json
import os

TABLE, MORE = "/etc/hearth/languages.json", "/etc/hearth/languages.more.json"
with open(TABLE, encoding="utf-8") as table, open(MORE, encoding="utf-8") as more:
    languages = {**json.load(table), **json.load(more)}
for name, how in languages.items():
    languages[name] = languages[how] if isinstance(how, str) else how
with open(TABLE, "w", encoding="utf-8") as table:
    json.dump(languages, table, indent=1)
os.unlink(MORE)
PYTHON

# What nobody compiles with: the compilers' own sources and tests, tools for link-time optimization,
# for making other Java runtimes, and help pages. Go's compiled standard library stays: it is what makes
# the first build quick.
rm -rf /usr/share/go-1.*/test /usr/share/go-1.*/api /usr/share/go-1.*/src/cmd /usr/lib/go-1.*/pkg/linux_*/cmd
find /usr/share/go-1.*/src -depth \( -type d -name testdata -o -type f -name '*_test.go' \) -exec rm -rf {} +
for tool in addr2line api dist doc fix nm objdump pprof trace; do
    rm -f /usr/lib/go-1.*/pkg/tool/linux_*/$tool
done
rm -f /usr/bin/*lto-dump* /usr/lib/gcc/*/*/lto1
rm -rf /usr/lib/jvm/*/jmods /usr/lib/jvm/*/man /usr/lib/R/library/translations /usr/share/R/doc
for part in help html doc demo tests; do
    rm -rf /usr/lib/R/library/*/$part
done

# The Java compiler for one file, and what it loads at its start, ready to be mapped. The archive is
# tied to the jar's size and time, which the image keeps.
java=/usr/lib/hearth/java
mkdir /tmp/java
javac -d /tmp/java $java/CompileFile.java
jar --create --file $java/compile.jar -C /tmp/java .
rm $java/CompileFile.java
cat >/tmp/java/Main.java <<'JAVA'
import java.util.*;
import java.util.stream.*;

public class Main {
    record Point(int x, int y) {}

    public static void main(String[] args) throws Exception {
        List<Point> points = IntStream.range(0, 3).mapToObj(i -> new Point(i, i)).toList();
        Map<String, Integer> sums = new HashMap<>();
        for (Point p : points) sums.merge("x" + p.x(), p.y(), Integer::sum);
        System.out.println(sums + " " + String.join(",", args));
    }
}
JAVA
java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit=$java/compile.jsa \
    -cp $java/compile.jar CompileFile /tmp/java/Main.java >/dev/null 2>&1
java @/tmp/java/Main.java.args image | grep -qF 'x2=2' # it compiles and runs
rm -rf /tmp/java /tmp/hsperfdata_root

chmod -R go+rX /etc/hearth /usr/lib/hearth
