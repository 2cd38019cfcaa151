#include "api/rest/operations/Pages.h"

#include "api/rest/operations/Tables.h"
#include "base/Ids.h"

namespace hearth::rest {

std::vector<Parameter> wholeListParameters() {
    return {queryParameter("limit", Schema::integer(1, 1000).fallback(1000), "Items of one page"),
            queryParameter("cursor", Schema::string().sizes(0, 1024),
                           "The `nextCursor` of the page before")};
}

std::string keyOfCursor(const std::string& cursor) {
    std::string key;
    if (!base64UrlDecode(cursor, key) || (key.empty() && !cursor.empty())) {
        throw Error(ErrorCode::InvalidArgument, "the cursor is not from this server")
            .field("?cursor", "must be the nextCursor of the page before")
            .hint("Leave it out to begin at the beginning");
    }
    return key;
}

std::string cursorOfKey(const std::string& key) {
    return base64UrlEncode(key);
}

}  // namespace hearth::rest
