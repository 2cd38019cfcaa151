#pragma once

#include <sqlite3.h>

#include <atomic>
#include <map>
#include <stdexcept>

namespace hearth::test {

/// During its life SQLite reads its files through it: `after` reads succeed, the next `failing` are
/// I/O errors, as on a bad disk. One at a time; databases opened under it end before it does.
class FlakyReads {
public:
    FlakyReads() : real_(::sqlite3_vfs_find(nullptr)), flaky_(*real_) {
        self = this;
        flaky_.zName = "flaky-reads";
        flaky_.xOpen = &FlakyReads::open;
        if (::sqlite3_vfs_register(&flaky_, 1) != SQLITE_OK) throw std::runtime_error("no VFS");
    }
    FlakyReads(const FlakyReads&) = delete;
    FlakyReads& operator=(const FlakyReads&) = delete;
    ~FlakyReads() {
        ::sqlite3_vfs_unregister(&flaky_);
        self = nullptr;
    }

    std::atomic<int> after{0};
    std::atomic<int> failing{0};
    std::atomic<int> failed{0};

private:
    static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
        const int code = self->real_->xOpen(self->real_, name, file, flags, out);
        if (code != SQLITE_OK || file->pMethods == nullptr) return code;
        // SQLite's unix files have several method tables, one for each way of locking.
        sqlite3_io_methods& methods = self->methods_[file->pMethods];
        methods = *file->pMethods;
        self->read_ = methods.xRead;
        methods.xRead = &FlakyReads::read;
        file->pMethods = &methods;
        return code;
    }
    static int read(sqlite3_file* file, void* into, int size, sqlite3_int64 at) {
        if (self->after > 0) {
            --self->after;
        } else if (self->failing > 0) {
            --self->failing;
            ++self->failed;
            return SQLITE_IOERR_READ;
        }
        return self->read_(file, into, size, at);
    }

    static inline FlakyReads* self = nullptr;
    sqlite3_vfs* real_;
    sqlite3_vfs flaky_;
    std::map<const sqlite3_io_methods*, sqlite3_io_methods> methods_;
    int (*read_)(sqlite3_file*, void*, int, sqlite3_int64) = nullptr;
};

}  // namespace hearth::test
