// libcurl speaks SMTP: it greets, encrypts, logs in and hands over the message that `mail_text`
// made. Subject and text are base64, so the alphabet of the message is ours. The server's last
// reply decides whose fault a refusal is: 552 and 554 concern the message, everything else the
// channel.
#include "alerts/mail.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <memory>

#include "privacy/content.h"
#include "watchdog/time.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t line_bytes_of_base64 = 57;  // 76 characters
constexpr std::size_t word_bytes_max = 45;        // of a header's encoded word of 75 characters

std::string base64_of(std::string_view text) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 3) {
    const auto byte = [&](std::size_t offset) -> std::uint32_t {
      return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0U;
    };
    const std::uint32_t bits = byte(0) << 16U | byte(1) << 8U | byte(2);
    out += digits[bits >> 18U];
    out += digits[bits >> 12U & 63U];
    out += at + 1 < text.size() ? digits[bits >> 6U & 63U] : '=';
    out += at + 2 < text.size() ? digits[bits & 63U] : '=';
  }
  return out;
}

/// A header's text in encoded words (RFC 2047), each of whole characters.
std::string encoded_words(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    std::size_t bytes = 0;
    while (bytes < text.size()) {
      const auto one = std::max<std::size_t>(first_characters(text.substr(bytes), 1).size(), 1);
      if (bytes + one > word_bytes_max) break;
      bytes += one;
    }
    all += (all.empty() ? "" : "\r\n ") + ("=?UTF-8?B?" + base64_of(text.substr(0, bytes)) + "?=");
    text.remove_prefix(bytes);
  }
  return all;
}

std::string mail_date(WallTime at) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S +0000", &parts);
  return text.data();
}

bool is_own_machine(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

/// The server with its port: that of submission, if none is named.
struct MailServer {
  std::string url, host;
  bool tls = false;
};
MailServer mail_server(const std::string& url) {
  MailServer server{.tls = url.starts_with("smtps://")};
  auto rest = url.substr(url.find("://") + 3);
  while (rest.ends_with('/')) rest.pop_back();
  const auto colon = rest.find(':', rest.starts_with('[') ? rest.find(']') : 0);
  server.host = rest.substr(0, colon);
  server.url = (server.tls ? "smtps://" : "smtp://") + rest;
  if (colon == std::string::npos) server.url += server.tls ? ":465" : ":587";
  return server;
}

struct Upload {
  std::string_view rest;
  std::stop_token stop;
};

std::size_t next_bytes(char* into, std::size_t size, std::size_t count, void* upload) {
  auto& rest = static_cast<Upload*>(upload)->rest;
  const auto bytes = std::min(size * count, rest.size());
  std::memcpy(into, rest.data(), bytes);
  rest.remove_prefix(bytes);
  return bytes;
}

int goes_on(void* upload, curl_off_t /*down*/, curl_off_t /*downed*/, curl_off_t /*up*/,
            curl_off_t /*upped*/) {
  return static_cast<Upload*>(upload)->stop.stop_requested() ? 1 : 0;
}

using CurlHandle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using CurlList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

CurlList receivers_of(const Mail& mail) {
  CurlList list(nullptr, &curl_slist_free_all);
  for (const auto& address : mail.to) {
    auto* longer = curl_slist_append(list.get(), ("<" + address + ">").c_str());
    if (longer == nullptr) throw std::bad_alloc();
    (void)list.release();
    list.reset(longer);
  }
  return list;
}

/// Says where, how encrypted, and as whom.
void set_way(CURL* curl, const Mail& mail, const MailServer& server) {
  const bool open = !server.tls && mail.login.empty() && is_own_machine(server.host);
  curl_easy_setopt(curl, CURLOPT_URL, server.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_USE_SSL, open ? CURLUSESSL_NONE : CURLUSESSL_ALL);
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  if (!mail.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, mail.ca_file.c_str());
  if (!mail.login.empty()) {
    const auto colon = mail.login.find(':');
    curl_easy_setopt(curl, CURLOPT_USERNAME, mail.login.substr(0, colon).c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, mail.login.substr(colon + 1).c_str());
  }
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(mail.at_most.count()));
}

SendResult result_of(CURLcode code, long reply, const MailServer& server, const char* said) {
  if (code == CURLE_OK)
    return {.answer = "the mail server took it (" + std::to_string(reply) + ")"};
  const bool of_this_message = reply == 552 || reply == 554;
  std::string why = *said != '\0' ? said : curl_easy_strerror(code);
  return {.kind = of_this_message ? SendResult::Kind::refused : SendResult::Kind::failed,
          .answer = server.host + ": " + why +
                    (reply >= 400 ? " (reply " + std::to_string(reply) + ")" : "")};
}

}  // namespace

std::string mail_text(const Mail& mail, WallTime now) {
  std::string to;
  for (const auto& address : mail.to) to += (to.empty() ? "<" : ",\r\n <") + address + ">";
  std::string text = "Date: " + mail_date(now) + "\r\nFrom: watchdog-monitor <" + mail.from +
                     ">\r\nTo: " + to + "\r\nSubject: " + encoded_words(mail.subject) +
                     "\r\nMessage-ID: <" + mail.key + mail.from.substr(mail.from.find('@')) +
                     ">\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                     "Content-Type: text/plain; charset=utf-8\r\n"
                     "Content-Transfer-Encoding: base64\r\n\r\n";
  for (std::size_t at = 0; at < mail.text.size(); at += line_bytes_of_base64)
    text += base64_of(std::string_view(mail.text).substr(at, line_bytes_of_base64)) + "\r\n";
  return text;
}

SendResult send_mail(const Mail& mail, const std::stop_token& stop) {
  static const auto ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  const CurlHandle curl(ready == CURLE_OK ? curl_easy_init() : nullptr, &curl_easy_cleanup);
  if (curl == nullptr)
    return {.kind = SendResult::Kind::failed,
            .answer =
                "this program cannot send mail: the static program has no libcurl. Use the "
                "package, or a channel of type command"};
  const auto server = mail_server(mail.url);
  const auto message = mail_text(mail, system_clock().wall());
  const auto receivers = receivers_of(mail);
  Upload upload{.rest = message, .stop = stop};
  std::array<char, CURL_ERROR_SIZE> said{};
  set_way(curl.get(), mail, server);
  curl_easy_setopt(curl.get(), CURLOPT_MAIL_FROM, ("<" + mail.from + ">").c_str());
  curl_easy_setopt(curl.get(), CURLOPT_MAIL_RCPT, receivers.get());
  curl_easy_setopt(curl.get(), CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_READFUNCTION, &next_bytes);
  curl_easy_setopt(curl.get(), CURLOPT_READDATA, &upload);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &goes_on);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &upload);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, said.data());
  const auto code = curl_easy_perform(curl.get());
  long reply = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &reply);
  return result_of(code, reply, server, said.data());
}

}  // namespace watchdog::monitor
