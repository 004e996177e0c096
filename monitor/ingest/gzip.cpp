#include "ingest/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

namespace watchdog::monitor {

Result<std::string> inflated(std::string_view gzip, std::size_t bytes_max) {
  constexpr int gzip_only = 16 + MAX_WBITS;
  const Error broken{ErrorCode::malformed, "the body is not gzip, or a part of it is missing"};
  z_stream stream{};
  if (inflateInit2(&stream, gzip_only) != Z_OK)
    return Error{ErrorCode::unavailable, "no memory to inflate the body"};
  const auto end = [](z_stream* ended) { inflateEnd(ended); };
  const std::unique_ptr<z_stream, decltype(end)> guard(&stream, end);
  std::string text;
  std::array<unsigned char, 64 * 1024> piece{};
  // zlib's interface is older than const; it only reads.
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  for (;;) {
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    const auto result = inflate(&stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) return broken;
    const auto bytes = piece.size() - stream.avail_out;
    if (bytes > bytes_max - text.size()) {
      return Error{ErrorCode::exhausted,
                   "an inflated body may have at most " + std::to_string(bytes_max) + " bytes"};
    }
    text.append(reinterpret_cast<const char*>(piece.data()), bytes);
    if (result != Z_STREAM_END) continue;
    if (stream.avail_in == 0) return text;
    if (inflateReset(&stream) != Z_OK) return broken;  // another member follows
  }
}

}  // namespace watchdog::monitor
