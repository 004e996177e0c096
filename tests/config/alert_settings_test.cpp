// Settings of alerts and their channels.
#include <sys/stat.h>

#include "config/configured.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

TEST_F(Configured, alerts_and_their_channels_are_read) {
  write(R"([alerts]
on = ["dead", "blocked"]
hold_seconds = 5
[alerts.channels.team]
format = "slack"
url = "https://example.org/a?b=c"
[alerts.channels."on-call"]
type = "command"
command = ["/bin/notify", "a b"]
[alerts.channels.log]
type = "log"
)");
  sources.environment["WATCHDOG_ALERTS_CHANNELS_TEAM_FORMAT"] = "json";
  sources.environment["WATCHDOG_ALERTS_BLOCKED_SECONDS"] = "60";
  const auto configuration = load();
  const auto& alerts = configuration.settings().alerts;
  EXPECT_EQ(alerts.rules.on, (std::vector{AlertCause::dead, AlertCause::blocked}));
  EXPECT_EQ(alerts.rules.hold, 5s);
  EXPECT_EQ(alerts.rules.blocked_for, 60s);
  ASSERT_EQ(alerts.channels.size(), 3U);
  EXPECT_EQ(alerts.channels.at("team").format, AlertFormat::json);
  EXPECT_EQ(alerts.channels.at("on-call").command,
            (std::vector<std::string>{"/bin/notify", "a b"}));
  EXPECT_EQ(alerts.channels.at("log").type, ChannelType::log);
  EXPECT_EQ(said(configuration, "alerts.on"), R"(["dead","blocked"], file watchdog.toml:2)");
  EXPECT_EQ(said(configuration, "alerts.channels.on-call.command"),
            R"(["/bin/notify","a b"], file watchdog.toml:9)");
}

TEST_F(Configured, a_list_may_come_from_a_variable) {
  sources.environment["WATCHDOG_ALERTS_ON"] = R"(["stuck"])";
  EXPECT_EQ(load().settings().alerts.rules.on, std::vector{AlertCause::stuck});
  sources.environment["WATCHDOG_ALERTS_ON"] = "stuck";
  EXPECT_EQ(load().settings().alerts.rules.on, std::vector{AlertCause::stuck}) << "one alone";
  sources.environment["WATCHDOG_ALERTS_ON"] = "lost";
  EXPECT_NE(refusal().find("WATCHDOG_ALERTS_ON: alerts.on is \"lost\"; it must be one of "
                           "\"stuck\", \"looping\""),
            std::string::npos)
      << refusal();
}

TEST_F(Configured, invalid_alert_settings_are_refused) {
  const std::string x = "[alerts.channels.x]\n";
  const std::string mail = x + "type = \"mail\"\n";
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {x + "format = \"json\"", "url is missing"},
           {x + "url = \"ftp://a\"", "begins with http:// or https://"},
           {x + "url = \"http://a/#b\"", "no spaces, no question mark, no #"},
           {x + "url = \"http://u:p@a/\"", "may not carry credentials"},
           {x + "url = \"http://a\"\nurl_file = \"/f\"", "and url are both given"},
           {x + "format = \"pagerduty\"", "secret_file is missing"},
           {x + "type = \"command\"", "command is missing"},
           {x + "type = \"command\"\ncommand = []", "command is missing"},
           {x + "type = \"command\"\ncommand = [\"\"]", "command is missing"},
           {x + "type = \"command\"\ncommand = \"rm -rf\"", "must be a list"},
           {x + "type = \"command\"\ncommand = [\"a\", 5]", "must be a text"},
           {x + "type = \"command\"\ncommand = [\"a\"]\nurl = \"http://a\"",
            "url does not apply to channels of type command"},
           {x + "type = \"log\"\nsecret_file = \"/f\"",
            "secret_file does not apply to channels of type log"},
           {x + "type = \"log\"\ncommand = [\"a\"]",
            "command does not apply to channels of type log"},
           {x + "type = \"fax\"", "must be one of \"webhook\", \"command\", \"log\", \"mail\""},
           {x + "format = \"telegram\"\nto = \"1\"", "secret_file is missing: token of the bot"},
           {x + "format = \"telegram\"\nsecret_file = \"/f\"", "to is missing: id of the chat"},
           {x + "format = \"ntfy\"\nurl = \"https://ntfy.sh/\"", "must end with the topic"},
           {x + "format = \"ntfy\"\nurl = \"https://ntfy.sh/a%2Fb\"", "must end with the topic"},
           {x + "format = \"ntfy\"\nurl = \"https://ntfy.sh\"", "must end with the topic"},
           {x + "format = \"discord\"\nurl = \"https://a\"\nto = \"x\"",
            "to does not apply to the format discord"},
           {x + "format = \"matrix\"\nurl = \"https://a\"\nsecret_file = \"/f\"\nto = \"#a:b\"",
            "the id of the room is needed"},
           {mail + "url = \"http://a\"\nto = \"a@b\"", "must be smtps://HOST"},
           {mail + "url = \"smtps://u:p@a\"\nto = \"a@b\"", "credentials"},
           {mail + "url = \"smtps://a/b\"\nto = \"a@b\"", "without a path"},
           {mail + "url = \"smtps://a\"", "to is missing: addresses"},
           {mail + "url = \"smtps://a\"\nto = \"a@b, c\"", "holds c, which is not a mail address"},
           {mail + "url = \"smtps://a\"\nto = \"a b@c\"", "is not a mail address"},
           {mail + "url = \"smtps://a\"\nto = \"a@b>\"", "is not a mail address"},
           {mail + "url = \"smtps://a\"\nto = \"a@b\"\nfrom = \"x\"", "from is not a mail address"},
           {mail + "url = \"smtps://a\"\nto = \"a@b\"\nformat = \"slack\"",
            "format does not apply to channels of type mail"},
           {x + "type = \"desktop\"\nurl = \"https://a\"", "url does not apply"},
           {"[alerts.channels.\"a b\"]\ntype = \"log\"", "1 to 64 letters, digits, _ and -"},
           {"[alerts]\non = [\"slow\"]", "is \"slow\"; it must be one of \"stuck\""},
           {"[alerts]\nhold_seconds = 86401", "from 0 to 86400"},
       }) {
    EXPECT_NE(refusal_of(text).find(why), std::string::npos) << text << "\n" << refusal();
  }
}

TEST_F(Configured, secrets_of_channels_come_from_files_of_their_owner) {
  const auto keep = [&](const std::string& name, const std::string& text, mode_t mode = 0600) {
    std::ofstream(dir / name) << text;
    EXPECT_EQ(chmod((dir / name).c_str(), mode), 0);
    return "\"" + (dir / name).string() + "\"\n";
  };
  write("[alerts.channels.a]\nurl_file = " + keep("url", " https://example.org/T0/x \n") +
        "secret_file = " + keep("key", "k e y\n") +
        "[alerts.channels.b]\nformat = \"pagerduty\"\nsecret_file = " + keep("rk", "R0"));
  auto secrets = channel_secrets(load().settings().alerts);
  ASSERT_TRUE(secrets.ok()) << to_text(secrets.error());
  EXPECT_EQ(secrets->at("a").url, "https://example.org/T0/x");
  EXPECT_EQ(secrets->at("a").secret, "k e y");
  EXPECT_EQ(secrets->at("b").url, "https://events.pagerduty.com/v2/enqueue");
  EXPECT_EQ(secrets->at("b").routing_key, "R0");
  EXPECT_EQ(secrets->at("b").secret, "") << "the key of an integration signs nothing";
  write("[alerts.channels.a]\nurl_file = " + keep("open", "https://a", 0644) +
        "secret_file = " + keep("empty", " \n") +
        "[alerts.channels.b]\nformat = \"pagerduty\"\nrouting_key_file = \"" +
        (dir / "none").string() + "\"\n[alerts.channels.c]\nurl_file = " + keep("bad", "nonsense"));
  secrets = channel_secrets(load().settings().alerts);
  ASSERT_FALSE(secrets.ok());
  EXPECT_EQ(secrets.error().size(), 4U) << to_text(secrets.error());
  EXPECT_EQ(to_text(secrets.error()).find("nonsense"), std::string::npos);
}

}  // namespace
}  // namespace watchdog::test
