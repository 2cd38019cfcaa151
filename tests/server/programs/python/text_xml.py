# XML and HTML are parsed, changed and written.
# Also as a cell of a context.
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

root = ET.fromstring("<r><i n='1'>a</i><i n='2'>b &amp; c</i></r>")
ET.SubElement(root, "i", n="3").text = "é <"
ET.indent(root)
print(ET.tostring(root, encoding="unicode"), [i.get("n") for i in root.findall("i[@n='2']")])


class Links(HTMLParser):
    def handle_starttag(self, tag, attributes):
        print(tag, dict(attributes))


Links().feed("<p>x<a href='?a&amp;b' id=q>y<br/>")
ET.fromstring("<a><b></a>")
