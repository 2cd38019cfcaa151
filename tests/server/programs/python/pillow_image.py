# Pillow draws, filters, saves and reads an image.
from PIL import Image, ImageDraw, ImageFilter, ImageOps

image = Image.new("RGB", (64, 32), "white")
draw = ImageDraw.Draw(image)
draw.ellipse((4, 4, 28, 28), fill=(200, 30, 30))
draw.text((34, 8), "Hi", fill="black")
image.filter(ImageFilter.BoxBlur(1)).resize((32, 16)).save("small.png")
image.save("small.gif")
print(image.getbbox(), ImageOps.grayscale(image).getextrema(), Image.open("small.png").size, image.getpixel((16, 16)))
Image.open(__import__("io").BytesIO(b"no image"))
