#include "api/serve/runtimes/RuntimeFactory.h"

#include <unistd.h>

#include <filesystem>

#include "base/Error.h"

namespace hearth::program {

void makeServerDirectories(const Instance& instance, const controller::Account& account,
                           const std::vector<std::string>& further) {
    std::vector<std::string> paths = {instance.data_dir + "/state", instance.run_dir + "/marks"};
    paths.insert(paths.end(), further.begin(), further.end());
    for (const std::string& path : paths) {
        std::filesystem::create_directories(path);
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        if (::chown(path.c_str(), account.uid, account.gid) != 0) throwErrno("chown", path);
    }
}

}  // namespace hearth::program
