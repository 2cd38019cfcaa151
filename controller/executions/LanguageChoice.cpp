#include "controller/executions/LanguageChoice.h"

#include <algorithm>

#include "base/Error.h"
#include "pool/spec/LanguageName.h"

namespace hearth::controller {

std::string chooseLanguage(const std::string& asked, const std::vector<std::string>& known) {
    std::string wanted = asked;
    if (wanted.empty()) {
        const bool python = std::find(known.begin(), known.end(), "python") != known.end();
        wanted = python || known.empty() ? "python" : known.front();
    }
    std::string found = pool::languageAmong(wanted, known);
    if (found.empty()) {
        std::string names;
        for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
        throw Error(ErrorCode::InvalidArgument, "the image has no language " + wanted)
            .field("/language",
                   names.empty() ? "the image has no languages" : "must be one of " + names);
    }
    return found;
}

}  // namespace hearth::controller
