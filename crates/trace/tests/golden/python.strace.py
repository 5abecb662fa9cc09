# Does known things to files of an empty directory, and writes them down as the format `ops` has them
# (`op,file,offset,len`). python.strace and python.operations.txt were made by
#
#   strace -f -y -ttt -s 0 -o python.strace -e trace=%file,%desc,%process,sync,msync \
#       python3 -S -E python.strace.py DIRECTORY python.operations.txt
#
# with strace 6.1 and Python 3.11; the directories of the files and of Python have other names here.
# files.strace is the part of it in which the program runs, up to its copies.
import os, mmap, sys
os.chdir(sys.argv[1])
done = []
def note(op, file, offset=0, length=0):
    done.append(f"{op},{file},{offset},{length}")
a = os.open("a", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644); note("create", 1)
for i in range(20):
    os.write(a, bytes(1000)); note("write", 1, i * 1000, 1000)
    if i % 5 == 4: os.fsync(a); note("fsync", 1)
b = os.open("b.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND); note("create", 2)
os.write(b, bytes(50)); note("write", 2, 0, 50)
if os.fork() == 0:
    os.write(b, bytes(60)); os._exit(0)
os.wait(); note("write", 2, 50, 60)
os.write(b, bytes(70)); note("write", 2, 110, 70)
os.fdatasync(b); note("fdatasync", 2)
os.close(b)
os.rename("b.tmp", "b"); note("rename", 2)
os.lseek(a, 500, os.SEEK_SET)
d = os.dup(a)
os.write(d, bytes(10)); note("write", 1, 500, 10)
os.write(a, bytes(10)); note("write", 1, 510, 10)
os.pwritev(a, [bytes(100), bytes(200)], 30000); note("write", 1, 30000, 300)
os.posix_fallocate(a, 0, 65536); note("alloc", 1, 0, 65536)
os.ftruncate(a, 40000); note("trunc", 1, 40000)
with mmap.mmap(a, 8192) as m: note("mmapw", 1, 0, 8192)
c = os.open("c", os.O_RDWR | os.O_CREAT | os.O_DSYNC); note("create", 3)
n = os.copy_file_range(a, c, 5000, 0, 0); note("write", 3, 0, n); note("fdatasync", 3)
n = os.sendfile(c, a, 0, 200); note("write", 3, 0, n); note("fdatasync", 3)  # the copy had an offset of its own
os.link("c", "c2"); os.unlink("c")
os.unlink("c2")
os.pwrite(c, bytes(7), 9000); note("write", 3, 9000, 7); note("fdatasync", 3)
os.close(c); note("delete", 3, 0, 9007)
os.rename("a", "b"); note("delete", 2, 0, 180); note("rename", 1)
os.close(a); os.close(d)
os.unlink("b"); note("delete", 1, 0, 40000)
open(sys.argv[2], "w").write("\n".join(done) + "\n")
