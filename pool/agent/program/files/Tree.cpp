#include "pool/agent/program/files/Tree.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

std::string temporaryName() {
    static std::atomic<unsigned> serial{0};
    char name[64];
    std::snprintf(name, sizeof(name), "%s%llx-%u", kTemporary.data(),
                  static_cast<unsigned long long>(nowNs()), serial++);
    return name;
}

bool removeTree(int parent, const char* name, int depth, Budget& budget) {
    if (unlinkat(parent, name, 0) == 0) return true;
    if (errno != EISDIR) return false;
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return true;
    if (errno != ENOTEMPTY || depth <= 0) return false;
    Directory directory(Fd(openat(parent, name, kWalkFlags)));
    if (!directory) return false;
    while (const char* entry = directory.next()) {
        if (!budget.spend()) {
            errno = ENOTEMPTY;
            return false;
        }
        if (!removeTree(directory.fd(), entry, depth - 1, budget)) return false;
    }
    return unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

}  // namespace hearth::agent
