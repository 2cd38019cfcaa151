#include "pool/runtime/docker/ImageRecords.h"

#include <algorithm>

#include "pool/sys/Files.h"

namespace hearth::pool::docker {
namespace {

// The only character of a reference that file names cannot have, and one no reference has.
constexpr char kSlash = '/';
constexpr char kInstead = '%';

}  // namespace

std::string ImageRecords::pathOf(const std::string& name) const {
    std::string file = name;
    std::replace(file.begin(), file.end(), kSlash, kInstead);
    return folder_ + "/" + file;
}

void ImageRecords::add(const std::string& name) const {
    sys::writeFile(pathOf(name), "", 0600);
}

void ImageRecords::remove(const std::string& name) const {
    sys::removeFile(pathOf(name));
}

std::vector<std::string> ImageRecords::all() const {
    std::vector<std::string> names = sys::listDirectory(folder_);
    for (std::string& name : names) std::replace(name.begin(), name.end(), kInstead, kSlash);
    return names;
}

}  // namespace hearth::pool::docker
