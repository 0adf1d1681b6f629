// Reads the blob that wire.py packs.

const MAGIC = "MTSCRUB2";
const PREAMBLE = 32;

// Gives {id, header, count, columns, palette, sprite}; a column has {coarse, heat, mu, sigma} beside
// its words. Arrays are views, nothing is copied but the blob itself, which may lie anywhere in the
// buffer of its message.
function readBlob(data) {
  const bytes = data.slice();
  const text = new TextDecoder();
  if (text.decode(bytes.subarray(0, 8)) !== MAGIC) throw new Error("These bytes are not a sheet.");
  const fields = new DataView(bytes.buffer);
  const length = fields.getUint32(28, true);
  const header = JSON.parse(text.decode(bytes.subarray(PREAMBLE, PREAMBLE + length)));
  const section = (name, Numbers) => {
    const [start, size] = header.sections[name];
    return new Numbers(
      bytes.buffer, PREAMBLE + length + start, size / Numbers.BYTES_PER_ELEMENT,
    );
  };
  return {
    id: blobIdentity(data),
    header,
    count: fields.getUint16(24, true),
    columns: header.columns.map((column, c) => ({
      ...column,
      heat: section(`heat${c}`, Float32Array),
      mu: section(`mu${c}`, Float64Array),
      sigma: section(`sigma${c}`, Float64Array),
    })),
    palette: section("palette", Uint8Array),
    sprite: section("sprite", Uint8Array),
  };
}

function blobIdentity(data) {
  return new TextDecoder().decode(data.subarray(8, 24));
}

// Cuts the sprite into one Uint32Array of pixels a picture (bytes R, G, B, A in memory).
async function readPictures({ header, count, sprite }) {
  const image = await createImageBitmap(new Blob([sprite]), {
    colorSpaceConversion: "none",
    premultiplyAlpha: "none",
  });
  const canvas = new OffscreenCanvas(image.width, image.height);
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.drawImage(image, 0, 0);
  image.close();
  const [height, width] = header.size;
  const { columns, pitch } = header.sprite;
  return Array.from({ length: count }, (_, i) => {
    const left = (i % columns) * pitch[1];
    const top = Math.floor(i / columns) * pitch[0];
    return new Uint32Array(pen.getImageData(left, top, width, height).data.buffer);
  });
}
