#!/usr/bin/env python3
"""A desktop that takes notifications (org.freedesktop.Notifications) and prints each as a line of JSON."""

import json

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = "org.freedesktop.Notifications"


class Desktop(dbus.service.Object):
    @dbus.service.method(NAME, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, app, replaces, icon, summary, body, actions, hints, expires):
        print(json.dumps({"app": app, "summary": summary, "body": body, "urgency": int(hints.get("urgency", 1))}), flush=True)
        return dbus.UInt32(1)

    @dbus.service.method(NAME, out_signature="as")
    def GetCapabilities(self):
        return ["body", "body-markup"]

    @dbus.service.method(NAME, out_signature="ssss")
    def GetServerInformation(self):
        return ("test", "test", "1", "1.2")


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
owned = dbus.service.BusName(NAME, bus)
desktop = Desktop(bus, "/org/freedesktop/Notifications")
print("ready", flush=True)
GLib.MainLoop().run()
