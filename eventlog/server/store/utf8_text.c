#include "eventlog/server/store/utf8_text.h"

#include "base/bytes.h"

void utf8_text_append(struct buffer *out, const char *text, size_t n)
{
    while (n) {
        size_t good;

        if (utf8_valid(text, n, &good)) {
            buffer_append(out, text, n);
            return;
        }
        buffer_append(out, text, good);
        buffer_append_text(out, "\xef\xbf\xbd");
        text += good + 1;
        n -= good + 1;
    }
}
