// However requests and answers are cut on their way through the proxy, they are understood or
// refused alike, and what is kept of them has its bound.

#include <optional>
#include <utility>

#include "fuzz/fuzz.h"
#include "http/framing.h"
#include "proxy/connection/http_message.h"

namespace http = boost::beast::http;
using namespace watchdog::monitor;

std::vector<std::string> fuzz_seeds() {
  return {
      "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n{\"a\":",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nabcde\r\n0\r\nT: t\r\n\r\n",
      "POST / HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\nContent-Length: 3\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n",
      "0\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 502 \r\nConnection: close\r\n\r\nrest",
      "HTTP/1.1 204 No Content\r\n folded: x\r\n\r\n",
      "Upgrade: x\r\nExpect: 100-continue\r\nConnection: keep-alive, x\r\n"};
}

namespace {

/// The part of one message that has come, as the proxy reads it.
template <bool is_request>
class Reading {
 public:
  explicit Reading(std::uint32_t head_bytes_max) : head_bytes_max_(head_bytes_max) {
    parser_.header_limit(head_bytes_max);
    parser_.body_limit(boost::none);
  }

  bool feed(std::string_view piece) {
    bytes_ += piece;
    const bool had_head = parser_.is_header_done();
    broken_ = !watchdog::monitor::feed(parser_, bytes_, error_);
    // It stops after the head, and the proxy goes on then.
    if (!broken_ && !had_head && parser_.is_header_done())
      broken_ = !watchdog::monitor::feed(parser_, bytes_, error_);
    body_ += std::exchange(parser_.get().body(), {});
    // The rest of a head, of a chunk's size or of trailers. Beyond that the proxy gives up.
    const auto bound = parser_.is_header_done() ? framing_bytes_max : 2 * head_bytes_max_;
    broken_ = broken_ || (!parser_.is_done() && bytes_.size() > bound);
    return !broken_ && !parser_.is_done();
  }

  /// Of what cannot be understood only that: where it is noticed is a matter of the pieces.
  std::string outcome() {
    LinkError ended;
    if (!broken_ && !parser_.is_done() && parser_.is_header_done()) parser_.put_eof(ended);
    if (broken_ || ended || !parser_.is_done()) return "broken";
    const auto& head = parser_.get();
    std::string all = is_framing_known(head) ? "known" : "unknown";
    for (const auto& [name, value] : headers_of(head)) {
      FUZZ_REQUIRE(name.find_first_of("\r\n: ") == std::string::npos);
      FUZZ_REQUIRE(value.find_first_of("\r\n") == std::string::npos);
      all += "\n" + name + "=" + value;
    }
    return all + "\n" + (head.keep_alive() ? "keep\n" : "last\n") + body_;
  }

 private:
  std::size_t head_bytes_max_;
  http::parser<is_request, PieceBody> parser_;
  std::string bytes_;  ///< Not understood yet.
  std::string body_;
  LinkError error_;
  bool broken_ = false;
};

template <bool is_request>
void try_message(std::string_view text) {
  std::optional<Reading<is_request>> reading;
  const auto feed = [&](std::string_view piece) { return reading->feed(piece); };
  same_in_pieces(
      text, [&] { reading.emplace(2 * 4'096); }, feed, [&] { return reading->outcome(); });
  // Which head is just above the limit is a matter of the pieces: the rest holds all the same.
  same_in_pieces(
      text, [&] { reading.emplace(128); }, feed, [&] { return reading->outcome().substr(0, 0); });
}

}  // namespace

void try_input(std::string_view input) {
  try_message<true>(input);
  try_message<false>(input);
}
